/* SPDX-License-Identifier: MIT */
/* The text of an answer that several replies have, by count of references. */
#include "api/http/shared_answer.h"

#include <stdlib.h>

struct shared_answer *shared_answer_ref(struct shared_answer *answer)
{
        if (answer)
                answer->references++;
        return answer;
}

struct shared_answer *shared_answer_unref(struct shared_answer *answer)
{
        if (!answer || --answer->references > 0)
                return NULL;
        free(answer->key);
        free(answer->body);
        free(answer);
        return NULL;
}
