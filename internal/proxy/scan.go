package proxy

// preface is what every HTTP/2 client sends first (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Frame types and flags (RFC 9113, sections 4.1, 6.2, 6.7 and 6.10).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	framePing         = 0x6
	frameContinuation = 0x9
	flagAck           = 0x1
	flagEndHeaders    = 0x4
)

// scanner counts the blocks of headers that arrive on a connection, which are the requests. gRPC refuses some of them
// (another HTTP method, headers that are too long, too many at once) without telling any of its hooks; the
// difference between this count and the hooks' is how many.
type scanner struct {
	bytes  int  // all that has arrived
	alien  bool // it does not begin as HTTP/2
	begun  int  // blocks of headers that have begun to arrive
	blocks int  // those that have arrived to their end
	frames int  // of all kinds but pings
	small  int  // of those, all but data of some size

	header    [9]byte
	have      int    // bytes of header
	remaining uint32 // bytes of the frame's payload that are still to come
}

// feed takes the next bytes of the connection.
func (s *scanner) feed(b []byte) {
	for len(b) > 0 && s.bytes < len(preface) {
		if b[0] != preface[s.bytes] {
			s.alien = true
		}
		s.bytes++
		b = b[1:]
	}
	s.bytes += len(b)
	if s.alien {
		return
	}
	for len(b) > 0 {
		if s.have < len(s.header) {
			n := copy(s.header[s.have:], b)
			s.have += n
			b = b[n:]
			if s.have < len(s.header) {
				return
			}
			s.remaining = uint32(s.header[0])<<16 | uint32(s.header[1])<<8 | uint32(s.header[2])
			if s.header[3] == frameHeaders {
				s.begun++
			}
			s.count()
		}
		n := min(s.remaining, uint32(min(len(b), 1<<24))) // #nosec G115 -- bounded in the same line
		s.remaining -= n
		b = b[n:]
		if s.remaining == 0 {
			s.endFrame()
		}
	}
}

// count counts a frame whose header has arrived. Pings are left to gRPC, which ends a connection that sends many.
func (s *scanner) count() {
	kind, flags := s.header[3], s.header[4]
	if kind == framePing && flags&flagAck == 0 {
		return
	}
	if s.frames++; kind != frameData || s.remaining < smallData {
		s.small++
	}
}

func (s *scanner) endFrame() {
	kind, flags := s.header[3], s.header[4]
	if (kind == frameHeaders || kind == frameContinuation) && flags&flagEndHeaders != 0 {
		s.blocks++
	}
	s.have = 0
}
