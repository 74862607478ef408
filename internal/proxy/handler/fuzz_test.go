package handler_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// dice are the decisions about a message, read from the bytes that a fuzzer gives.
type dice struct{ data []byte }

func (d *dice) next() byte {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *dice) number() uint64 {
	var n uint64
	for range d.next() % 9 {
		n = n<<8 | uint64(d.next())
	}
	return n
}

// text is a word that is known to matter, or arbitrary, or the one with the other in or behind it.
func (d *dice) text() string {
	word := words[int(d.next())%len(words)]
	size := min(int(d.next()%64), len(d.data))
	some := strings.ToValidUTF8(string(d.data[:size]), "\u202e")
	d.data = d.data[size:]
	switch d.next() % 4 {
	case 0:
		return word
	case 1:
		return some
	case 2:
		return word + some
	}
	return strings.ToValidUTF8(word[:len(word)/2]+some+word[len(word)/2:], "?")
}

// words are all texts that the tables of good and bad fields have.
var words = func() []string {
	list := []string{`\`, `\x`, `\..\..\Windows`, `C:\Windows\System32`, "CON", ":stream", " ", ".", "s3cret", root}
	for _, text := range goodTexts {
		list = append(list, text)
	}
	for _, texts := range badTexts {
		list = append(list, texts...)
	}
	list = slices.DeleteFunc(list, func(s string) bool { return !utf8.ValidString(s) || len(s) > 600 })
	slices.Sort(list)
	return slices.Compact(list)
}()

// throw fills a message: each field as it is in a good request, empty, or by the dice. Secrets are marked.
func (d *dice) throw(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		how := d.next() % 4
		switch {
		case how == 0:
			m.Clear(f)
		case f.Message() != nil:
			d.throw(m.Mutable(f).Message())
		case isSecret(f):
			m.Set(f, protoreflect.ValueOfString(marker+d.text()))
		case how == 1: // stays as it is
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(d.text()))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(d.next()%2 == 0))
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(d.number()))))
		case f.Kind() == protoreflect.Uint32Kind:
			m.Set(f, protoreflect.ValueOfUint32(uint32(d.number())))
		case f.Kind() == protoreflect.Int64Kind:
			m.Set(f, protoreflect.ValueOfInt64(int64(d.number())))
		}
	}
}

// marker is in every secret and nowhere else.
const marker = "hush-hush"

func isSecret(f protoreflect.FieldDescriptor) bool {
	return f.Name() == "password" || f.Name() == "chap_secret" || f.Name() == "MutualChapSecret"
}

// pathArgs are the places of paths in what the ledger says of an operation.
var pathArgs = map[string][]int{
	"PathExists": {0}, "Mkdir": {0}, "Rmdir": {0}, "RmdirContents": {0}, "IsSymlink": {0}, "CreateSymlink": {0, 1},
	"MountVolume": {1}, "UnmountVolume": {1}, "VolumeIDFromTargetPath": {0}, "ClosestVolumeIDFromTargetPath": {0}, "NewSMBGlobalMapping": {1},
}

// try sends a request and looks at everything that comes of it.
func (s *stack) try(t *testing.T, m served, wire []byte) {
	t.Helper()
	s.reset(t, fakehost.Options{})
	before := len(s.host.Ledger())
	response, err := s.call(t.Context(), m, wire)
	if (response == nil) != (err != nil) {
		t.Errorf("%s: response %v, error %v", m.FullMethod, response, err)
	}
	did := s.host.Ledger()[before:]
	if status.Code(err) == codes.InvalidArgument && len(did) != 0 && !m.Operation.ReadOnly {
		t.Errorf("%s: error %v, and the host has done %+v", m.FullMethod, err, did)
	}
	for _, e := range did {
		for _, at := range pathArgs[e.Op] {
			path := e.Args[at]
			if path == "" && e.Op == "NewSMBGlobalMapping" {
				continue
			}
			if _, err := s.roots.Check(path); err != nil || !strings.HasPrefix(path, root) || strings.Contains(path, "..") {
				t.Errorf("%s reached the host with the path %q", m.FullMethod, path)
			}
		}
	}
	shown := fmt.Sprint(err) + fmt.Sprintf("%+v", did)
	if s.last != nil {
		params, _ := apiserver.Params(s.last)
		if !json.Valid(params) {
			t.Errorf("%s: params %s", m.FullMethod, params)
		}
		shown += string(params) + fmt.Sprint(apiserver.Targets(s.last))
	}
	if strings.Contains(shown, marker) && !strings.Contains(open(m, wire), marker) {
		t.Errorf("%s tells a secret: %s", m.FullMethod, shown)
	}
	if message := status.Convert(err).Message(); strings.ContainsAny(message, "\n\r\x00\u202e") {
		t.Errorf("%s: error %q", m.FullMethod, message)
	}
}

// open is what a request says besides its secrets.
func open(m served, wire []byte) string {
	request := m.NewRequest()
	if proto.Unmarshal(wire, request) != nil {
		return marker // nobody can tell
	}
	fieldsOf(request.ProtoReflect(), func(of protoreflect.Message, f protoreflect.FieldDescriptor) {
		if isSecret(f) {
			of.Clear(f)
		}
	})
	return fmt.Sprint(request)
}

func FuzzEveryMethod(f *testing.F) {
	s := newStack(f)
	for i, m := range s.methods {
		wire := wireOf(f, good(f, m))
		f.Add(uint(i), true, wire)
		f.Add(uint(i), false, []byte{2, 3, 4, 5, 2, 200, 8, 1, 2, 250, 2})
	}
	f.Fuzz(func(t *testing.T, i uint, raw bool, data []byte) {
		m := s.methods[i%uint(len(s.methods))]
		if raw {
			s.try(t, m, data)
			return
		}
		request := good(t, m)
		(&dice{data}).throw(request.ProtoReflect())
		s.try(t, m, wireOf(t, request))
	})
}

// The same for every method in each run of the tests, with dice that fall alike each time.
func TestArbitraryRequestsDoNotPassTheHandlers(t *testing.T) {
	s := newStack(t)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	reached := 0
	for range 60 {
		for _, m := range s.methods {
			data := make([]byte, 300)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			request := good(t, m)
			(&dice{data}).throw(request.ProtoReflect())
			s.try(t, m, wireOf(t, request))
			if len(s.host.Ledger()) > 5 {
				reached++
			}
			s.try(t, m, data[:r.IntN(len(data))])
		}
	}
	if reached < 500 {
		t.Errorf("only %d requests reached the host", reached)
	}
}

var _ handler.Disk = (*reborn)(nil)
