package witness

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Bounds of files, in bytes. A ConfigMap holds 1 MiB.
const (
	maxKeyFile  = 4 << 10
	maxKeysFile = 1 << 20
)

// errNoKey means that the file with the witness's key was not read yet.
var errNoKey = errors.New("the witness has no key")

// Files are the key of the witness and the keys of logs as files, which may change at any time: the kubelet replaces them.
type Files struct {
	// Key is the file with the private key. Its mode is not looked at: that of a mounted Secret is the kubelet's.
	Key string
	// NodeKeys is the file with verifier keys of logs; empty for none.
	NodeKeys string
	Log      *zap.Logger

	key  atomic.Pointer[evidence.Key]
	logs atomic.Pointer[map[string]evidence.Keys]
	seen [2][sha256.Size]byte // of the goroutine that reads
}

// Follow reads the files again and again until ctx is done. A file that cannot be read changes nothing: what was read before holds.
func (f *Files) Follow(ctx context.Context, every time.Duration) error {
	f.Read()
	periodic.Run(ctx, every, f.Read)
	return nil
}

// Read takes over files that have other content than before. What is wrong with one is logged once.
func (f *Files) Read() {
	f.take(0, f.Key, maxKeyFile, func(text []byte) error {
		key, err := evidence.ParseKey(text)
		if err == nil {
			f.key.Store(key)
			f.Log.Info("key of the witness", zap.String(logkeys.Name, key.WitnessKey()))
		}
		return err
	})
	if f.NodeKeys == "" {
		return
	}
	f.take(1, f.NodeKeys, maxKeysFile, func(text []byte) error {
		logs, err := byOrigin(string(text))
		if err == nil {
			f.logs.Store(&logs)
			f.Log.Info("keys of logs for the witness", zap.Int(logkeys.Objects, len(logs)))
		}
		return err
	})
}

func (f *Files) take(which int, file string, limit int64, parse func([]byte) error) {
	text, err := atmost.ReadFile(file, limit)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // without the file's name, which the log entry has
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v\x00%s", err, text))
	if sum == f.seen[which] {
		return
	}
	f.seen[which] = sum
	if err == nil {
		err = parse(text)
	}
	if err != nil {
		f.Log.Error("file of the witness not used; what was read before holds", zap.String(logkeys.Path, file), zap.Error(err))
	}
}

// byOrigin sorts the keys of logs by the log; keys of witnesses, which a file for verification may hold beside them, are left out.
// A file without any key is one that takes all away.
func byOrigin(text string) (map[string]evidence.Keys, error) {
	out := map[string]evidence.Keys{}
	if strings.TrimSpace(text) == "" {
		return out, nil
	}
	all, err := evidence.ParseKeys(text)
	if err != nil {
		return nil, err
	}
	for _, k := range all.Describe() {
		if k.Kind != "log" {
			continue
		}
		one, err := evidence.ParseKeys(k.Key)
		if err != nil {
			return nil, err
		}
		out[k.Name] = out[k.Name].And(one)
	}
	return out, nil
}

// WitnessKey returns the key that cosigns.
func (f *Files) WitnessKey() (*evidence.Key, error) {
	if key := f.key.Load(); key != nil {
		return key, nil
	}
	return nil, errNoKey
}

// Of returns the operator's keys of a log, none if there are none.
func (f *Files) Of(origin string) evidence.Keys {
	if logs := f.logs.Load(); logs != nil {
		return (*logs)[origin]
	}
	return evidence.Keys{}
}
