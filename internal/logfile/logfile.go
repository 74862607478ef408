// Package logfile writes diagnostics to a file that is begun anew when it is full.
// It trusts the directory of the file: whoever may write there may also take the file away.
package logfile

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gopkg.in/natefinch/lumberjack.v2"
)

// Options bound what a log takes up. Zero values stand for the defaults.
type Options struct {
	MaxSizeMB  int // in MiB, at which the file is renamed; 100; a negative one is no bound
	MaxBackups int // renamed files that are kept; 5
	MaxAgeDays int // after which a renamed file is removed; 30
}

func (o Options) complete() Options {
	for _, n := range []struct {
		value *int
		usual int
	}{{&o.MaxSizeMB, 100}, {&o.MaxBackups, 5}, {&o.MaxAgeDays, 30}} {
		if *n.value == 0 {
			*n.value = n.usual
		}
	}
	if o.MaxSizeMB < 0 {
		o.MaxSizeMB = math.MaxInt32
	}
	return o
}

// File is a log file. Any number of goroutines may write to it.
type File struct{ *lumberjack.Logger }

// Open opens a file for its owner alone, where the system knows owners, and appends to it. A directory that is not
// there is not made: it would have the access that the directory above gives.
func Open(path string, o Options) (*File, error) {
	o = o.complete()
	// The writer opens its file with the first line, where a fault would be seen by nobody.
	file, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600) // #nosec G703 -- the operator names the file
	if err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("open log file %s: %w", path, err)
	}
	return &File{&lumberjack.Logger{Filename: path, MaxSize: o.MaxSizeMB, MaxBackups: o.MaxBackups, MaxAge: o.MaxAgeDays, LocalTime: false}}, nil
}

// Sync does nothing: each line has been handed to the system when Write returns.
func (*File) Sync() error { return nil }
