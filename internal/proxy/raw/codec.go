package raw

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Message is the bytes of one message, whatever its type.
type Message []byte

// Lent is a message that gRPC holds in memory until it has written it, which the flow control of the other side may delay at will.
type Lent struct {
	// Message is a *Message or one of protocol buffers.
	Message any
	// Lend is called when gRPC is given the bytes. It returns what is called when gRPC has let go of them: they are written, or their
	// stream was reset or refused. When a whole connection ends, it may not be called.
	Lend func() (taken func())
}

// Codec leaves a *Message as it is, accounts for a *Lent, and leaves everything else to protocol buffers.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// Marshal implements encoding.CodecV2.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*Message); ok {
		return mem.BufferSlice{mem.SliceBuffer(*m)}, nil
	}
	if l, ok := v.(*Lent); ok {
		return l.marshal()
	}
	codec, err := protoCodec()
	if err != nil {
		return nil, err
	}
	return codec.Marshal(v)
}

func (l *Lent) marshal() (mem.BufferSlice, error) {
	data, err := Codec{}.Marshal(l.Message)
	if err != nil {
		return nil, err
	}
	b := data.Materialize()
	if m, ok := l.Message.(*Message); ok {
		b = *m
	}
	data.Free()
	// gRPC counts no references to small buffers.
	for size := 2 << 10; mem.IsBelowBufferPoolingThreshold(cap(b)); size *= 2 {
		b = append(make([]byte, 0, size), b...)
	}
	return mem.BufferSlice{mem.NewBuffer(&b, pool(l.Lend()))}, nil
}

// pool is where gRPC returns the buffer of one message.
type pool func()

// Get implements mem.BufferPool.
func (pool) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put implements mem.BufferPool.
func (p pool) Put(*[]byte) { p() }

// Unmarshal implements encoding.CodecV2. The bytes are copied, since gRPC uses its buffers again.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*Message); ok {
		*m = data.Materialize()
		return nil
	}
	codec, err := protoCodec()
	if err != nil {
		return err
	}
	return codec.Unmarshal(data, v)
}

// Name is empty, so that a call has the content type "application/grpc" unless it asks for another.
func (Codec) Name() string { return "" }

func protoCodec() (encoding.CodecV2, error) {
	codec := encoding.GetCodecV2(proto.Name)
	if codec == nil {
		return nil, fmt.Errorf("gRPC has no codec %s", proto.Name)
	}
	return codec, nil
}
