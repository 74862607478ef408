package query_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// verifiedLog is a log that was verified without a fault and not read yet.
func verifiedLog(t *testing.T, k *kept) (dir string, s *query.Source) {
	t.Helper()
	dir = put(t, k.files)
	s, err := query.OpenVerified(t.Context(), []string{dir}, nil, k.options(t))
	if err != nil {
		t.Fatal(err)
	}
	if fault := s.Logs()[0].Report.Fault; fault != nil {
		t.Fatal(fault)
	}
	return dir, s
}

func TestALogThatIsChangedBetweenItsVerificationAndItsReadingIsChanged(t *testing.T) {
	k := keptLog(t)
	for name, change := range map[string]func(text []byte) []byte{
		"another record":    func(text []byte) []byte { return bytes.Replace(text, []byte("no rule"), []byte("NO RULE"), 1) },
		"a line of nothing": func(text []byte) []byte { return append([]byte("{}\n"), text[3:]...) },
		"a shorter file":    func(text []byte) []byte { return text[:len(text)/2] },
	} {
		dir, s := verifiedLog(t, k)
		if err := os.WriteFile(filepath.Join(dir, k.names[1]), change(bytes.Clone(k.files[k.names[1]])), 0o600); err != nil {
			t.Fatal(err)
		}
		shown(t, s)
		if got := s.Logs()[0].Standing(); !got.Changed || got.Verified != 0 || got.Why != query.NotTheSame {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A caller that has enough is told nothing more: how the log stands has to say it.
func TestALogThatCannotBeReadToItsEndIsChangedIfNobodyIsToldWhy(t *testing.T) {
	k := keptLog(t)
	for name, hasEnough := range map[string]bool{"the first record was enough": true, "all were wanted": false} {
		dir, s := verifiedLog(t, k)
		if err := os.Remove(filepath.Join(dir, k.last())); err != nil {
			t.Fatal(err)
		}
		var told error
		for _, err := range s.Records() {
			if told = errors.Join(told, err); hasEnough {
				break
			}
		}
		if got := s.Logs()[0].Standing(); got.Changed != hasEnough || (told == nil) != hasEnough || got.Why != query.NotTheSame {
			t.Errorf("%s: told %v, %+v", name, told, got)
		}
	}
}
