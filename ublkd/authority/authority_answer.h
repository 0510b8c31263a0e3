/* SPDX-License-Identifier: MIT */
/* What polkit answers, as the API sees it. */
#pragma once

struct authority_question;

enum authority_answer {
        AUTHORITY_NONE, /* polkit does not run, or did not answer in time */
        AUTHORITY_REFUSED,
        AUTHORITY_GRANTED,
};
