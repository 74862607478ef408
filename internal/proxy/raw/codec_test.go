package raw

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMessagesAreLeftAsTheyAre(t *testing.T) {
	for _, want := range [][]byte{{}, {0}, {0xff, 0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0x80}, 100_000)} {
		in := Message(want)
		data, err := Codec{}.Marshal(&in)
		if err != nil {
			t.Fatal(err)
		}
		halves := mem.BufferSlice{mem.SliceBuffer(data.Materialize()[:len(want)/2]), mem.SliceBuffer(data.Materialize()[len(want)/2:])}
		var out Message
		if err := (Codec{}).Unmarshal(halves, &out); err != nil || !bytes.Equal(out, want) {
			t.Errorf("%d bytes became %d: %v", len(want), len(out), err)
		}
	}
}

func TestOtherMessagesAreProtocolBuffers(t *testing.T) {
	data, err := Codec{}.Marshal(wrapperspb.String("x"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte{10, 1, 'x'}; !bytes.Equal(data.Materialize(), want) {
		t.Errorf("got %x, want %x", data.Materialize(), want)
	}
	got := &wrapperspb.StringValue{}
	if err := (Codec{}).Unmarshal(data, got); err != nil || got.GetValue() != "x" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := (Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer{0xff}}, got); err == nil {
		t.Error("bytes that are no message were taken for one")
	}
	if _, err := (Codec{}).Marshal("text"); err == nil {
		t.Error("a text was taken for a message")
	}
}

func TestWhatIsLentIsGivenBackOnce(t *testing.T) {
	for _, v := range []any{new(Message), &Message{1}, ptr(Message(make([]byte, 1<<10))), ptr(Message(make([]byte, 1<<20))), wrapperspb.String(""), wrapperspb.String("x")} {
		plain, err := Codec{}.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lent, taken := 0, 0
		data, err := Codec{}.Marshal(&Lent{Message: v, Lend: func() func() { lent++; return func() { taken++ } }})
		if err != nil || !bytes.Equal(data.Materialize(), plain.Materialize()) || lent != 1 || taken != 0 {
			t.Errorf("%T: %v, %d lent, %d taken", v, err, lent, taken)
		}
		data.Ref()
		if data.Free(); taken != 0 {
			t.Errorf("%T was given back while it is held", v)
		}
		if data.Free(); taken != 1 {
			t.Errorf("%T was given back %d times", v, taken)
		}
	}
	if _, err := (Codec{}).Marshal(&Lent{Message: 1, Lend: func() func() { t.Error("lent"); return nil }}); err == nil {
		t.Error("a number was marshalled")
	}
}

func ptr[T any](v T) *T { return &v }
