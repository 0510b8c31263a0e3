// SPDX-License-Identifier: MIT
package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const written = `{"client":0,"block":7,"write":true,"value":1,"call":10,"return":20}
`

func verdict(t *testing.T, history string) []int {
	blocks, _, err := read(strings.NewReader(history))
	if err != nil {
		t.Fatal(err)
	}
	wrong, undecided := judge(blocks, time.Minute)
	if undecided != nil {
		t.Fatalf("undecided: %v", undecided)
	}
	return wrong
}

func TestHistories(t *testing.T) {
	cases := []struct {
		name, history string
		wrong         []int
	}{
		{"nothing", "", nil},
		{"zeroes at first", `{"client":1,"block":7,"value":0,"call":1,"return":2}`, nil},
		{"what was written", written + `{"client":1,"block":7,"value":1,"call":21,"return":22}`, nil},
		{"another block", written + `{"client":1,"block":8,"value":0,"call":21,"return":22}`, nil},
		{"either, at the same time", written + `{"client":1,"block":7,"value":0,"call":15,"return":22}`, nil},
		{"a stale read", written + `{"client":1,"block":7,"value":0,"call":21,"return":22}`, []int{7}},
		{"back again", written + `{"client":1,"block":7,"value":1,"call":11,"return":12}
{"client":2,"block":7,"value":0,"call":13,"return":14}`, []int{7}},
		{"never written", written + `{"client":1,"block":7,"value":2,"call":21,"return":22}`, []int{7}},
		{"a write without an answer, done", written + `{"client":1,"block":7,"write":true,"value":2,"call":21,"return":0}
{"client":2,"block":7,"value":2,"call":31,"return":32}`, nil},
		{"a write without an answer, not done", written + `{"client":1,"block":7,"write":true,"value":2,"call":21,"return":0}
{"client":2,"block":7,"value":1,"call":31,"return":32}`, nil},
		{"a write without an answer, done and undone", written + `{"client":1,"block":7,"write":true,"value":2,"call":21,"return":0}
{"client":2,"block":7,"value":2,"call":31,"return":32}
{"client":2,"block":7,"value":1,"call":33,"return":34}`, []int{7}},
		{"a read without an answer", written + `{"client":1,"block":7,"value":9,"call":31,"return":0}`, nil},
	}
	for _, one := range cases {
		if wrong := verdict(t, one.history); !reflect.DeepEqual(wrong, one.wrong) {
			t.Errorf("%s: %v, not %v", one.name, wrong, one.wrong)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, history := range []string{"{", `{"block":"x"}`, `{"call":2,"return":1}`} {
		if _, _, err := read(strings.NewReader(history)); err == nil {
			t.Errorf("%s: no error", history)
		}
	}
}
