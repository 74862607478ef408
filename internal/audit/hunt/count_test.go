package hunt

import (
	"testing"
	"time"
)

func TestASummaryIsAsManyAsItStandsFor(t *testing.T) {
	for count, want := range map[string]bool{"": false, `,"count":9`: false, `,"count":10`: true, `,"count":1000000`: true, `,"count":9223372036854775808`: true, `,"count":18446744073709551615`: true, `,"count":-4`: false} {
		b := &burst{span: time.Minute, count: 10, groups: map[string][]time.Time{}}
		doc := []byte(`{"type":"request","stage":"Summary","outcome":{"result":"denied"` + count + `}}`)
		f, err := Flatten(doc)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.add(f, countOf(doc), time.Unix(0, 0)); got != want {
			t.Errorf("%q: %t", count, got)
		}
	}
}

func TestNoOtherRecordIsMoreThanOne(t *testing.T) {
	for _, stage := range []string{"ResponseComplete", "Panic", "RequestReceived"} {
		if n := countOf([]byte(`{"type":"request","stage":"` + stage + `","what":{"method":"Mkdir"},"outcome":{"result":"rejected","count":1000000}}`)); n != 1 {
			t.Errorf("%s: %d", stage, n)
		}
	}
}
