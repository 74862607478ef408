package scan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
			if err := readItems(d, add); err != nil {
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

func readItems(d *json.Decoder, add func(raw []byte) error) error {
	start, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if start == nil { // some lists say null for none
		return nil
	}
	if start != json.Delim('[') {
		return fmt.Errorf("read a list: %v where the objects should begin", start)
	}
	var raw json.RawMessage
	for d.More() {
		if err := d.Decode(&raw); err != nil { // into the same memory
			return cut(err)
		}
		if err := add(raw); err != nil {
			return err
		}
	}
	return expect(d, json.Delim(']'))
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
