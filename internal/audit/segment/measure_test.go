package segment

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// counting counts what is read.
type counting struct {
	io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// What stands behind a good opening costs a start little, however long it is: what no crash leaves is read no further.
func TestALongPlantedSegmentIsReadNoFurtherThanItIsClearThatNoCrashLeftIt(t *testing.T) {
	opening := `{"v":1,"seq":7,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{},"prev":"` + strings.Repeat("A", 43) + `="}` + "\n"
	for name, behind := range map[string]string{"newlines": strings.Repeat("\n", 8<<20), "short lines": strings.Repeat("junk\n", 2<<20)} {
		r := &counting{Reader: strings.NewReader(opening + behind)}
		size := int64(len(opening + behind))
		m, err := measure(7, 0, r, map[uint64]bool{})
		if err != nil || m.Seq != 7 || m.fault("it", size) == "" {
			t.Errorf("%s: it ends behind record %d: %v", name, m.Seq, err)
		}
		if r.n > 1<<20 {
			t.Errorf("%s: %d bytes were read", name, r.n)
		}
	}
}

// A chain of added segments, each with bytes behind it that the next one declares, is read a few times, however long it is.
func TestALongChainOfPlantedSegmentsIsReadAFewTimes(t *testing.T) {
	const chain = 60
	var texts []string
	var links []Link
	behind := strings.Repeat("junk\n", 2000)
	prev := strings.Repeat("A", 43) + "="
	for i := range uint64(chain) {
		line := fmt.Sprintf(`{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{},"prev":"%s"}`, i+1, prev)
		text := line + "\n" + behind
		l := Link{Given: Name(i + 1), First: i + 1, Size: int64(len(text)), Counts: true, Prev: prev}
		if i > 0 {
			before := links[i-1]
			l.Previous, l.Bytes = before.Given, before.Size-int64(len(behind))
			l.Torn, l.TornHash = int64(len(behind)), fmt.Sprintf("%x", sha256.Sum256([]byte(behind)))
		}
		texts, links, prev = append(texts, text), append(links, l), encodeLeaf(Leaf([]byte(line)))
	}
	var read, all int64
	for _, text := range texts {
		all += int64(len(text))
	}
	chained, err := Chain(links, Signed{Size: 1}, func(i int) (io.ReadCloser, error) {
		read += int64(len(texts[i])) // at most
		return io.NopCloser(strings.NewReader(texts[i])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, keep := range chained.Keep {
		if !keep {
			t.Fatalf("segment %d is not kept", i+1)
		}
	}
	if read > 5*all {
		t.Errorf("%d bytes were read of %d", read, all)
	}
}

// added is a chain of segments that hold an opening each, with a hole behind it that the next one declares.
func added(holes []int64) (links []Link, openings []string) {
	prev := strings.Repeat("A", 43) + "="
	hashes := map[int64]string{}
	for i, hole := range holes {
		seq := uint64(i) + 1 // #nosec G115 -- small
		line := fmt.Sprintf(`{"v":1,"seq":%d,"type":"log","stage":"LogOpen","time":"2026-03-02T12:00:00Z","session":"s","id":"","log":{},"prev":"%s"}`, seq, prev)
		l := Link{Given: Name(seq), First: seq, Size: int64(len(line)) + 1 + hole, Counts: true, Prev: prev}
		if i > 0 {
			before := holes[i-1]
			if hashes[before] == "" {
				h := sha256.New()
				_, _ = io.CopyN(h, zeros{}, before)
				hashes[before] = fmt.Sprintf("%x", h.Sum(nil))
			}
			l.Previous, l.Bytes, l.Torn, l.TornHash = links[i-1].Given, links[i-1].Size-before, before, hashes[before]
		}
		links, openings, prev = append(links, l), append(openings, line+"\n"), encodeLeaf(Leaf([]byte(line)))
	}
	return links, openings
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What stands behind the records of segments that were not signed is read up to a bound, whatever the segments say of it, and once.
func TestHolesBehindAddedSegmentsAreReadUpToABound(t *testing.T) {
	const hole = MaxTorn
	judge := func(links []Link, openings []string) (kept int, read int64) {
		chained, err := Chain(links, Signed{Size: 1}, func(i int) (io.ReadCloser, error) {
			r := &counting{Reader: io.MultiReader(strings.NewReader(openings[i]), io.LimitReader(zeros{}, links[i].Size-int64(len(openings[i]))))}
			return closing{r, func() { read += r.n }}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, keep := range chained.Keep {
			if keep {
				kept++
			}
		}
		return kept, read
	}
	t.Run("one behind each", func(t *testing.T) {
		holes := make([]int64, 60)
		for i := range holes {
			holes[i] = hole
		}
		links, openings := added(holes)
		if kept, read := judge(links, openings); kept != MaxUnsignedTorn/hole+1 || read > MaxUnsignedTorn+int64(len(links))*2*MaxLost {
			t.Errorf("%d segments of %d are kept, and %d bytes were read", kept, len(links), read)
		}
	})
	t.Run("one of which many say something else", func(t *testing.T) {
		links, openings := added([]int64{hole, 0})
		for i := range 50 {
			other := links[1]
			other.Given, other.TornHash = Name(2), fmt.Sprintf("%064x", i)
			links, openings = append(links, other), append(openings, openings[1])
		}
		if kept, read := judge(links, openings); kept != 2 || read > hole+int64(len(links))*2*audit.MaxRecord+4*MaxLost {
			t.Errorf("%d segments are kept, and %d bytes were read", kept, read)
		}
	})
}

type closing struct {
	io.Reader
	close func()
}

func (c closing) Close() error {
	c.close()
	return nil
}

// No more intents are open than operations can be under way: what would begin one more was not written by the proxy.
func TestAnIntentMoreThanCanBeUnderWayIsNotOfTheLog(t *testing.T) {
	var text strings.Builder
	seq, prev := uint64(0), strings.Repeat("A", 43)+"="
	write := func(rest string) {
		seq++
		line := fmt.Sprintf(`{"v":1,"seq":%d,"type":"request",%s,"prev":"%s"}`, seq, rest, prev)
		prev = encodeLeaf(Leaf([]byte(line)))
		text.WriteString(line + "\n")
	}
	const head = `"time":"2026-03-02T12:00:00Z","session":"s","id":"x"`
	begin := func() { write(`"stage":"RequestReceived",` + head) }
	for range MaxOpen {
		begin()
	}
	write(`"stage":"ResponseComplete",` + head + `,"intent_seq":7`)
	begin()
	write(`"stage":"ResponseComplete",` + head + `,"intent_seq":7`) // which is no more
	for range 3 {
		begin()
	}
	for signed, want := range map[uint64]uint64{0: MaxOpen + 3, MaxOpen + 4: MaxOpen + 4, seq: seq} {
		m, err := measure(1, signed, strings.NewReader(text.String()), map[uint64]bool{})
		if err != nil || m.Seq != want || m.fault("it", int64(text.Len())) == "" != (want == seq) {
			t.Errorf("%d are signed: it ends with record %d, not %d: %v", signed, m.Seq, want, err)
		}
	}
	few := map[uint64]bool{1 << 40: true}
	if m, err := measure(1, 0, strings.NewReader(text.String()), few); err != nil || m.Seq != MaxOpen-1 {
		t.Errorf("beside one that is open before, it ends with record %d: %v", m.Seq, err)
	}
}
