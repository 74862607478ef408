package scan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readPage reads one page of a list as it arrives and gives each object to add. The text given is valid until add
// returns: memory holds one object, however many a page has and however large its neighbours are. It returns the token
// of the next page, "" after the last.
func readPage(body io.Reader, add func(raw []byte) error) (next string, err error) {
	d := json.NewDecoder(body)
	if err := expect(d, json.Delim('{')); err != nil {
		return "", err
	}
	var hasItems bool
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", cut(err)
		}
		switch key {
		case "metadata":
			var meta struct {
				Continue string `json:"continue"`
			}
			if err := d.Decode(&meta); err != nil {
				return "", cut(err)
			}
			next = meta.Continue
		case "items":
			hasItems = true
			if d, err = readItems(d, body, add); err != nil {
				return "", err
			}
		default:
			var ignored json.RawMessage
			if err := d.Decode(&ignored); err != nil {
				return "", cut(err)
			}
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return "", err
	}
	if !hasItems { // a Status, or the answer of something else than an API server
		return "", errors.New("read a list: the answer is no list")
	}
	return next, nil
}

// readItems gives the objects of a list to add, and returns what stands behind the list as an object of its own. encoding/json would refuse a whole page for one
// object that is too deep for it.
func readItems(d *json.Decoder, body io.Reader, add func(raw []byte) error) (rest *json.Decoder, err error) {
	start, err := d.Token()
	if err != nil {
		return nil, cut(err)
	}
	if start == nil { // some lists say null for none
		return d, nil
	}
	if start != json.Delim('[') {
		return nil, fmt.Errorf("read a list: %v where the objects should begin", start)
	}
	in := bufio.NewReaderSize(io.MultiReader(d.Buffered(), body), 64<<10)
	var raw []byte
	for isFirst := true; ; isFirst = false {
		c, err := nextByte(in)
		if err != nil {
			return nil, cut(err)
		}
		if c == ']' {
			break
		}
		if !isFirst {
			if c != ',' {
				return nil, fmt.Errorf("read a list: %q where a comma is expected", c)
			}
			if c, err = nextByte(in); err != nil {
				return nil, cut(err)
			}
		}
		if c != '{' {
			return nil, fmt.Errorf("read a list: %q where an object should begin", c)
		}
		if raw, err = restOf(in, append(raw[:0], c)); err != nil { // into the same memory
			return nil, cut(err)
		}
		if err := add(raw); err != nil {
			return nil, err
		}
	}
	rest = json.NewDecoder(io.MultiReader(strings.NewReader(`{"":0`), in))
	return rest, expect(rest, json.Delim('{'))
}

// nextByte is the next byte that is no white space.
func nextByte(in *bufio.Reader) (byte, error) {
	for {
		c, err := in.ReadByte()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

// restOf reads on to the end of the object that raw begins. Its reader finds what is wrong within.
func restOf(in *bufio.Reader, raw []byte) ([]byte, error) {
	inText := false
	for depth := 1; depth > 0; {
		c, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		raw = append(raw, c)
		switch {
		case inText && c == '\\':
			if c, err = in.ReadByte(); err != nil {
				return nil, err
			}
			raw = append(raw, c)
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
	}
	return raw, nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if got != want {
		return fmt.Errorf("read a list: %v where %v is expected", got, want)
	}
	return nil
}

// cut explains an error of the decoder: most often the answer ended early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read a list: %w", err)
}
