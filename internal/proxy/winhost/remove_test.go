//go:build linux

package winhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForceRemovesLinksInATreeAndNotWhatTheyLeadTo(t *testing.T) {
	for _, operation := range []string{"Rmdir force", "RmdirContents"} {
		tree, base := place(t)
		victim := filepath.Join(base, "work", "dir")
		for name, text := range map[string]string{"a": "../../outside", "sub/b": base + "/outside", "sub/mount-c": base + "/outside", "d": "/nothing", "e": "e"} {
			if err := os.Symlink(text, filepath.Join(victim, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := operations[operation](tree, []string{"dir"}); err != nil {
			t.Errorf("%s: %v", operation, err)
		}
		if diff := cmp.Diff([]string{".", "secret"}, list(t, filepath.Join(base, "outside"))); diff != "" {
			t.Errorf("%s reached outside (-want +got):\n%s", operation, diff)
		}
	}
}

func TestADirectoryWithManyEntriesIsEmptied(t *testing.T) {
	tree, base := place(t)
	for i := range 3*batch + 1 {
		if err := os.WriteFile(filepath.Join(base, "work/dir/sub", strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.empty(context.Background(), []string{"dir"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"."}, list(t, filepath.Join(base, "work/dir"))); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}

func TestRemovalEndsWithItsContext(t *testing.T) {
	tree, base := place(t)
	before := list(t, base)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tree.empty(ctx, []string{"dir"}); !errors.Is(err, context.Canceled) {
		t.Errorf("empty: %v", err)
	}
	if err := tree.remove(ctx, []string{"dir"}, true); !errors.Is(err, context.Canceled) {
		t.Errorf("remove: %v", err)
	}
	if diff := cmp.Diff(before, list(t, base)); diff != "" {
		t.Errorf("the disk changed (-before +after):\n%s", diff)
	}
}

func TestRemovalIsBoundedInDepth(t *testing.T) {
	tree, base := place(t)
	current, err := openUnix(filepath.Join(base, "work", "dir"))
	if err != nil {
		t.Fatal(err)
	}
	for range deepest + 10 {
		next, err := step(current, "d", true)
		if err != nil {
			t.Fatal(err)
		}
		if err := current.Close(); err != nil {
			t.Fatal(err)
		}
		current = next
	}
	if err := current.Close(); err != nil {
		t.Fatal(err)
	}
	err = tree.empty(context.Background(), []string{"dir"})
	if err == nil || !strings.Contains(err.Error(), "within each other") {
		t.Errorf("got %v", err)
	}
}
