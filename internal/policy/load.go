package policy

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pipeguard/pipeguard/internal/atmost"
)

// LoadFS reads every *.rego file below fsys, tests among them. Names that begin with a dot are skipped: the kubelet keeps
// the files of a ConfigMap in ..data and links to them. Symbolic links to files are followed, links to
// directories are not. The default Limits apply while reading, so that no directory can fill the memory.
func LoadFS(fsys fs.FS) (Modules, error) {
	limits := Limits{}.withDefaults()
	m := Modules{Files: map[string]string{}}
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read policy directory: %w", err)
		}
		if name != "." && strings.HasPrefix(path.Base(name), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() || path.Ext(name) != ".rego" {
			return nil
		}
		if len(m.Files) == limits.Files {
			return fmt.Errorf("read policy %s: more than %d modules", name, limits.Files)
		}
		text, err := atmost.ReadFS(fsys, name, int64(limits.FileBytes)) // follows links, as the kubelet's layout needs
		if err != nil {
			return fmt.Errorf("read policy: %w", err)
		}
		if total += len(text); total > limits.TotalBytes {
			return fmt.Errorf("read policy %s: more than %d bytes in all modules", name, limits.TotalBytes)
		}
		m.Files[name] = string(text)
		return nil
	})
	if err != nil {
		return Modules{}, err
	}
	return m, nil
}
