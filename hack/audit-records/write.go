package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// The files that Make returns, by their places below the project's root.
const (
	PageFile = "docs/audit-records.md"
	JSONFile = "docs/audit-record.schema.json"
)

// Make returns the content of both files as the source in the project's root has it.
func Make(root string) (map[string][]byte, error) {
	record, err := Read(root)
	if err != nil {
		return nil, err
	}
	text, err := record.Page()
	if err != nil {
		return nil, err
	}
	schema, err := record.JSON()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{PageFile: text, JSONFile: schema}, nil
}

// Write writes both files below the directory out.
func Write(root, out string) error {
	files, err := Make(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, filepath.FromSlash(name)), text, 0o644); err != nil { // #nosec G306 -- it is published where the caller says
			return fmt.Errorf("write the reference of records: %w", err)
		}
	}
	return nil
}
