//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// The answers of a client that never reads would pile up in memory, as fast as it asks.
func TestAClientThatNeverReadsIsReadNoFurtherAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "bufconn")
		const many = 8000
		began, c := time.Now(), f.raw(t, "filesystem-v1")
		said := &memoryConn{}
		w := wireOver(t, said)
		asked := 0
		for ; asked < many; asked++ {
			w.request(false)
			w.data(10, 4, 'C', ':', '\\', 'a')
			if _, err := c.Write(said.buffer.Bytes()); err != nil {
				break
			}
			said.buffer.Reset()
			synctest.Wait() // each is answered before the next
		}
		if asked == many {
			t.Fatal("all requests were taken")
		}
		record := f.log.await(t, 1, connection)[0]
		if took := time.Since(began); took < takenWithin || took > takenWithin+time.Second || record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "did not read") {
			t.Errorf("after %v: %+v", took, record.Outcome)
		}
		if n := f.metric(t, "pipeguard_streams_total"); n == 0 || n > many/2 {
			t.Errorf("%v of %d requests were read", n, many)
		}
		f.mustWork(t)
		_ = f.stop()
	})
}

// Descriptors that come with the bytes of a socket are closed with the read of these, and are not kept.
func TestDescriptorsThatAClientSendsAreNotKept(t *testing.T) {
	f := start(t, "unix")
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	c, ok := f.raw(t, "filesystem-v1").(*net.UnixConn)
	if !ok {
		t.Fatal("no socket")
	}
	w := &wire{t: t, conn: c, stream: 1}
	begun := burst(t, 0, nil)
	for i := range begun { // the last byte too has read all descriptors
		const each = 16
		fds := make([]int, each)
		for j := range fds {
			fds[j] = int(theirs.Fd()) //nolint:gosec // descriptors are small
		}
		if _, _, err := c.WriteMsgUnix(begun[i:i+1], syscall.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	w.drain()
	if err := ours.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // as it is returned
		t.Errorf("somebody holds the other end of the pipe while the connection is open: %v", err)
	}
	f.mustWork(t)
}
