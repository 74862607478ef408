//go:build linux

package main

import (
	"embed"
	"fmt"
	"strings"
	"sync/atomic"
)

// bodies are reviews as an API server sent them, see TestBodies.
//
//go:embed testdata/*.json
var bodies embed.FS

// Texts in the bodies that stand for what differs from request to request.
const (
	uidMark  = "@UID@"
	nameMark = "@NAME@"
	image    = `"image":"registry.example.com/shop/web:`
)

// Kinds of pods, see podsToSend.
const (
	plain   = "plain"   // no hostPath at all
	driver  = "driver"  // a CSI driver's, with six pipes, where it may have them
	refused = "refused" // the same where it may not
)

// sample is a review that is sent again and again.
type sample struct {
	name    string
	text    string
	isNew   bool // no two pods have the same image
	allowed bool // by a webhook that judges
}

func samples() ([]sample, error) {
	out := []sample{
		{name: plain, allowed: true},
		{name: driver, allowed: true},
		{name: driver + ", never seen", allowed: true, isNew: true},
		{name: refused},
		{name: refused + ", never seen", isNew: true},
	}
	for i := range out {
		s := &out[i]
		file, _, _ := strings.Cut(s.name, ",")
		text, err := bodies.ReadFile("testdata/" + file + ".json")
		if err != nil {
			return nil, err
		}
		s.text = string(text)
		if !strings.Contains(s.text, uidMark) || !strings.Contains(s.text, nameMark) || s.isNew && !strings.Contains(s.text, image) {
			return nil, fmt.Errorf("testdata/%s.json lacks %s, %s or %s", file, uidMark, nameMark, image)
		}
	}
	return out, nil
}

var sent atomic.Int64

// next is the next body and its uid.
func (s *sample) next() (body, uid string) {
	n := sent.Add(1)
	uid = fmt.Sprintf("0b8f8a52-6a0c-4f0e-a8f0-%012d", n)
	body = strings.NewReplacer(uidMark, uid, nameMark, fmt.Sprintf("pod-%08d", n)).Replace(s.text)
	if s.isNew {
		body = strings.ReplaceAll(body, image, fmt.Sprint(image, n, "."))
	}
	return body, uid
}
