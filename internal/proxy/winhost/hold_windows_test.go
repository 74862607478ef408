package winhost

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestADirectoryThatIsHeldCannotBeRenamedOrRemoved(t *testing.T) {
	d := newDisk(t)
	d.mkdir(`a\b`)
	d.write(`a\file`)
	opened, err := openWorking(filepath.Join(d.root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	empty, err := opened.Open("b")
	if err != nil {
		t.Fatal(err)
	}
	a, b, aside := filepath.Join(d.root, "a"), filepath.Join(d.root, `a\b`), filepath.Join(d.root, "aside")
	for range 2 { // as often as is asked
		var holds []interface{ Close() error }
		for _, o := range []dir{opened, empty} {
			hold, err := o.Hold()
			if err != nil {
				t.Fatal(err)
			}
			holds = append(holds, hold)
		}
		if err := os.Rename(a, aside); err == nil {
			t.Error("it was renamed")
		}
		if err := os.Rename(b, aside); err == nil {
			t.Error("the one in it was renamed")
		}
		if err := os.Remove(b); err == nil {
			t.Error("the one in it was removed")
		}
		if err := opened.Remove("b"); err == nil {
			t.Error("the one in it was removed by handle")
		}
		// What is in them is as before.
		if err := errors.Join(opened.Mkdir("new"), opened.Remove("new"), empty.Mkdir("x"), empty.Remove("x")); err != nil {
			t.Error(err)
		}
		for _, hold := range holds {
			if err := hold.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := errors.Join(empty.Close(), opened.Remove("b")); err != nil || d.has(`a\b`) {
		t.Errorf("it is still held: %v", err)
	}
}

func TestADirectoryThatWasMovedIsNotHeld(t *testing.T) {
	d := newDisk(t)
	d.mkdir("a")
	opened, err := openWorking(filepath.Join(d.root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	if err := os.Rename(filepath.Join(d.root, "a"), filepath.Join(d.root, "moved")); err != nil {
		t.Skipf("NOT TESTED: this system moves no directory that is open: %v", err)
	}
	if hold, err := opened.Hold(); err == nil { // Wine knows the path of such a directory no more
		t.Errorf("got %v", hold)
	}
}
