// SPDX-License-Identifier: MIT
// Cdiparser reads files of the Container Device Interface with the parser of its authors, as an engine does, and fails if it
// refuses one.
//
//	cdiparser FILE...
package main

import (
	"fmt"
	"os"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func main() {
	status := 0
	for _, path := range os.Args[1:] {
		spec, err := cdi.ReadSpec(path, 0)
		if err == nil && spec == nil {
			err = fmt.Errorf("there is no such file")
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			status = 1
		}
	}
	os.Exit(status)
}
