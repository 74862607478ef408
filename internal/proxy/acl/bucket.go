package acl

import "time"

// Rate bounds how fast something may be used up.
type Rate struct {
	Most      float64 // at once
	PerSecond float64 // that come back
}

// Bucket is a token bucket: https://www.rfc-editor.org/rfc/rfc2697 has the idea. The zero value is full. It is not safe for concurrent
// use.
type Bucket struct {
	left float64
	at   time.Time // of the last question, the zero time if there was none
}

// Left is how much may be taken now. It is below zero if more was taken than there was.
func (b *Bucket) Left(r Rate, now time.Time) float64 {
	if b.at.IsZero() {
		b.left = r.Most
	} else {
		b.left = min(r.Most, b.left+now.Sub(b.at).Seconds()*r.PerSecond)
	}
	b.at = now
	return b.left
}

// Take takes n whether or not they are left, as Left found it last. A negative number gives them back.
func (b *Bucket) Take(n float64) { b.left -= n }
