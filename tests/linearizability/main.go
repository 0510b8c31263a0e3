// SPDX-License-Identifier: MIT

// Judge a history of reads and writes of single blocks, from many clients: is there an order of all operations, each
// at one moment between its call and its return, in which every read returns what the write before it wrote?
//
// The history is JSON on stdin, one operation a line (see Operation). Exit status: 0 it is linearizable; 1 it is not;
// 2 the history cannot be read; 3 undecided after -timeout. It knows nothing of ublkd: the search is Porcupine's.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation of one client on one block. Times are nanoseconds of one clock. Block 0 to N hold the value 0 at first.
type Operation struct {
	Client int    `json:"client"`
	Block  int    `json:"block"`
	Write  bool   `json:"write"`
	Value  uint64 `json:"value"`  // written, or read
	Call   int64  `json:"call"`   // before the system call
	Return int64  `json:"return"` // after it; 0: it failed, or never returned, so a write may take effect at any time, or never
}

type input struct {
	write bool
	value uint64
}

// A block is a register, and blocks do not depend on each other: each is judged alone.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return uint64(0) },
		Step: func(state, in, out interface{}) (bool, interface{}) {
			asked := in.(input)
			if asked.write {
				return true, asked.value
			}
			return out.(uint64) == state.(uint64), state
		},
		DescribeOperation: func(in, out interface{}) string {
			if asked := in.(input); asked.write {
				return fmt.Sprintf("write %d", asked.value)
			}
			return fmt.Sprintf("read %d", out.(uint64))
		},
	}
}

func read(source io.Reader) (map[int][]porcupine.Operation, int, error) {
	blocks, count := map[int][]porcupine.Operation{}, 0
	lines := bufio.NewScanner(source)
	for lines.Scan() {
		var one Operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", count+1, err)
		}
		count++
		if one.Return == 0 && !one.Write {
			continue // a read that has no answer says nothing
		}
		if one.Return == 0 {
			one.Return = math.MaxInt64
		} else if one.Return < one.Call {
			return nil, 0, fmt.Errorf("line %d: it returned before it was called", count)
		}
		blocks[one.Block] = append(blocks[one.Block], porcupine.Operation{
			ClientId: one.Client, Input: input{one.Write, one.Value}, Call: one.Call, Output: one.Value, Return: one.Return,
		})
	}
	return blocks, count, lines.Err()
}

// judge returns the blocks whose history is not linearizable, and those that are undecided.
func judge(blocks map[int][]porcupine.Operation, timeout time.Duration) (wrong, undecided []int) {
	for block, history := range blocks {
		switch porcupine.CheckOperationsTimeout(model(), history, timeout) {
		case porcupine.Illegal:
			wrong = append(wrong, block)
		case porcupine.Unknown:
			undecided = append(undecided, block)
		}
	}
	sort.Ints(wrong)
	sort.Ints(undecided)
	return wrong, undecided
}

func main() {
	timeout := flag.Duration("timeout", 2*time.Minute, "of the search, for each block")
	flag.Parse()
	blocks, count, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "the history cannot be read: %v\n", err)
		os.Exit(2)
	}
	wrong, undecided := judge(blocks, *timeout)
	fmt.Printf("%d operations on %d blocks; not linearizable: %v; undecided: %v\n", count, len(blocks), wrong, undecided)
	if len(wrong) > 0 {
		os.Exit(1)
	}
	if len(undecided) > 0 {
		os.Exit(3)
	}
}
