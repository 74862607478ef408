//go:build linux

package winhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A name that turns from a directory into a link and back, as fast as can be, must not lead anybody out.
func TestSwappedDirectoriesLeadNobodyOut(t *testing.T) {
	tree, base := place(t)
	swap, out := filepath.Join(base, "work", "swap"), filepath.Join(base, "work", "out")
	if err := errors.Join(os.Mkdir(swap, 0o755), os.Mkdir(filepath.Join(base, "outside", "sub"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var swapping sync.WaitGroup
	stop := make(chan struct{})
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// "swap" is by turns an own directory and the link to the neighbour, and never absent.
			if err := unix.Renameat2(unix.AT_FDCWD, swap, unix.AT_FDCWD, out, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	done, refused := 0, 0
	for i := range 4000 {
		var err error
		switch i % 4 {
		case 0:
			err = tree.mkdir([]string{"swap", "new"})
		case 1:
			err = tree.remove(context.Background(), []string{"swap", "sub"}, true)
		case 2:
			err = tree.link([]string{"swap", "link"}, "dir", true, same)
		case 3:
			err = tree.empty(context.Background(), []string{"swap"})
		}
		if err == nil {
			done++
		} else {
			refused++
		}
	}
	close(stop)
	swapping.Wait()
	if diff := cmp.Diff([]string{".", "secret", "sub"}, list(t, filepath.Join(base, "outside"))); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	t.Logf("%d done, %d refused", done, refused)
	if done == 0 || refused == 0 {
		t.Errorf("%d done and %d refused: the two never met", done, refused)
	}
}
