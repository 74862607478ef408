package intake

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// Status is the HTTP status for an error of Read: 408, 413, 503, or 400 for a body that broke off.
func Status(err error) int {
	switch {
	case errors.Is(err, ErrSlow):
		return http.StatusRequestTimeout
	case errors.Is(err, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrBusy):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// Handler has next answer requests when their bodies are there. Others are answered with Status, and their connection ends.
func (d *Desk) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body bytes.Buffer
		place, err := d.Read(w, req, &body)
		if err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), Status(err))
			return
		}
		defer place.Leave()
		req.Body = io.NopCloser(&body)
		next.ServeHTTP(w, req)
	})
}
