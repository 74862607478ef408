package evidence

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// removeSegments removes all segments but the open one, as the writer does.
func (w *watched) removeSegments(t *testing.T) {
	t.Helper()
	all, _ := paths(t, w.madeLog)
	segments := slices.DeleteFunc(all, func(s string) bool { return filepath.Base(s) == StartFile })
	var last uint64
	for _, s := range segments[:len(segments)-1] {
		last += uint64(bytes.Count(files(t, w.dir)[filepath.Base(s)], []byte("\n"))) // #nosec G115 -- a length
	}
	last += w.log.start.end
	if err := w.log.Prune(context.Background(), last); err != nil {
		t.Fatal(err)
	}
	w.write(w.line("log", "LogPrune", fmt.Sprintf(`,"log":{"pruned":{"segments":[],"first_seq":1,"last_seq":%d}}`, last)))
	w.checkpoint()
	for _, s := range segments[:len(segments)-1] {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
}

// A witness that was away for as long as it takes to remove the records behind those that it cosigned last refused the log for ever, once the proxy had been
// restarted.
func TestAWitnessThatWasAwayCosignsALogThatRemovedRecords(t *testing.T) {
	for name, c := range map[string]struct {
		file  func(t *testing.T, file string)
		keeps bool
	}{
		"what proves it is kept": {func(*testing.T, string) {}, true},
		"it was removed": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, false},
		"it is another log's": {func(t *testing.T, file string) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			g, err := parseGrowth(text)
			if err != nil {
				t.Fatal(err)
			}
			g.before.nodes[0].hash[0] ^= 1
			writeFile(t, file, g.format())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			o := Options{Sinks: []Sink{w.sink}, Grown: filepath.Join(t.TempDir(), "key.grown")}
			session := func(do func()) {
				w.close()
				for len(w.sink.got) > 0 { // its last checkpoint
					<-w.sink.got
				}
				w.open(o)
				w.begin(0)
				do()
			}
			var cosigned uint64
			session(func() {
				client := w.client(t)
				for range 3 {
					c := w.grown(2)
					if err := client.Send(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					cosigned = c.Size
				}
			})
			for range 3 { // without the witness
				session(func() {
					w.grown(3)
					w.removeSegments(t)
				})
			}
			if w.log.start.end <= cosigned {
				t.Fatalf("%d records were removed, and %d cosigned", w.log.start.end, cosigned)
			}
			c.file(t, o.Grown)
			session(func() {
				for len(w.sink.got) > 0 {
					<-w.sink.got
				}
				err := w.client(t).Send(t.Context(), w.grown(1))
				if c.keeps && err != nil || !c.keeps && (err == nil || !strings.Contains(err.Error(), "cannot be known")) {
					t.Errorf("%v", err)
				}
			})
			w.close()
			if len(w.refused) > 0 {
				t.Errorf("the witness was told of %v", w.refused)
			}
		})
	}
}

func FuzzGrowth(f *testing.F) {
	tree, leaves := leafRange{}, leafRange{}
	for i := range 13 {
		tree.append(Leaf([]byte{byte(i)}))
	}
	leaves.begin, leaves.end = tree.end, tree.end
	for i := range 300 {
		leaves.append(Leaf(fmt.Append(nil, i)))
	}
	g := growth{tree, leaves}
	f.Add(g.format())
	f.Add((&growth{tree, leafRange{begin: 13, end: 13}}).format())
	f.Add([]byte(grownTitle + "\n1\n18446744073709551615\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := parseGrowth(text)
		if err != nil {
			return
		}
		if got := g.format(); !bytes.Equal(got, text) {
			t.Errorf("%q becomes %q", text, got)
		}
		if g.before.begin != 0 || g.before.end != g.after.begin || g.after.end < g.after.begin {
			t.Errorf("%d to %d, %d to %d", g.before.begin, g.before.end, g.after.begin, g.after.end)
		}
	})
}
