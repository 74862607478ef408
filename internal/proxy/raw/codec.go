package raw

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Message is the bytes of one message, whatever its type.
type Message []byte

// Codec leaves a *Message as it is, and everything else to protocol buffers.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// Marshal implements encoding.CodecV2.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*Message); ok {
		return mem.BufferSlice{mem.SliceBuffer(*m)}, nil
	}
	codec, err := protoCodec()
	if err != nil {
		return nil, err
	}
	return codec.Marshal(v)
}

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
