// Command audit-records writes the reference of audit records from the types that records are made of:
//
//	go run ./hack/audit-records [DIRECTORY]
//
// writes docs/audit-records.md and docs/audit-record.schema.json below DIRECTORY, or below the project's root, in which it runs.
package main

import (
	"fmt"
	"os"
)

func main() {
	out := "."
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := Write(".", out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
