package httpsclient

import (
	"errors"
	"net/url"
)

// ParseServer reads the address of a server, https://HOST:PORT. Its errors quote nothing of the text, which may hold a password.
func ParseServer(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Path != "" && u.Path != "/") {
		return nil, errors.New("want https://HOST:PORT")
	}
	return u, nil
}
