//go:build unix

package pipe

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Names returns the names of all pipes that there are: here, of the sockets in the directory, whether or not a process answers.
func Names(o Options, _ []string) ([]string, error) {
	entries, err := os.ReadDir(o.SocketDir)
	if err != nil {
		return nil, fmt.Errorf("list pipes: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".sock"); ok && entry.Type() == fs.ModeSocket {
			names = append(names, name)
		}
	}
	return names, nil
}
