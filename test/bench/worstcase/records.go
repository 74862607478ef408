//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// refusals is how many bytes of records the log has of a time that are not the driver's.
func refusals(dir string, from, to time.Time) (total int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit-*"))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		n, err := refusalsIn(file, self, from, to)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func refusalsIn(file, driver string, from, to time.Time) (total int, err error) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var record struct {
			Type string    `json:"type"`
			Time time.Time `json:"time"`
			Who  struct {
				Process struct {
					Exe string `json:"exe"`
				} `json:"process"`
			} `json:"who"`
		}
		if json.Unmarshal(lines.Bytes(), &record) != nil { // the last line may be half written
			continue
		}
		ofCaller := record.Type == "connection" || record.Type == "request"
		if ofCaller && record.Who.Process.Exe != driver && record.Time.After(from) && !record.Time.After(to) {
			total += len(lines.Bytes()) + 1
		}
	}
	return total, lines.Err()
}
