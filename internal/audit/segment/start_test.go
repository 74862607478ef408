package segment

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// told is a Disk that is told of each reading.
type told struct {
	Disk
	read func()
}

func (d told) Read(name string) (io.ReadCloser, int64, error) {
	r, size, err := d.Disk.Read(name)
	return struct {
		io.Reader
		io.Closer
	}{toldReader{r, d.read}, r}, size, err
}

type toldReader struct {
	io.Reader
	read func()
}

func (r toldReader) Read(p []byte) (int, error) {
	r.read()
	return r.Reader.Read(p[:min(len(p), 512)])
}

// A log may be of any length, and a service that is told to stop has seconds.
func TestAStartThatIsEndedReadsNoFurther(t *testing.T) {
	disk := newMemory()
	w, err := OpenDisk(t.Context(), disk, Options{SegmentBytes: 2 * audit.MaxRecord, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := w.Append(t.Context(), &audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, Outcome: &audit.Outcome{Result: audit.ResultOK}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	disk = disk.crash(1 << 30)
	void, err := disk.Create(Name(900_000))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := void.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, disk, Options{})) // which declares it: each start looks whether it is as it was
	before, err := disk.Names()
	if err != nil {
		t.Fatal(err)
	}
	for last := 1; ; last++ {
		ctx, stop := context.WithCancel(t.Context())
		read := 0
		w, err := OpenDisk(ctx, told{disk, func() {
			if read++; read == last {
				stop()
			}
		}}, Options{})
		stop()
		if err == nil { // there was no more to read
			if last < 10 {
				t.Errorf("a start reads %d times: the test says little", last)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || read != last {
			t.Fatalf("ended at its reading %d, a start read %d times: %v", last, read, err)
		}
		if after, err := disk.Names(); err != nil || len(after) != len(before) {
			t.Fatalf("there were %d files, and there are %d: %v", len(before), len(after), err)
		}
	}
}
