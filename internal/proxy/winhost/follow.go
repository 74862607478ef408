package winhost

import (
	"errors"
	"fmt"
)

// end is where a walk ended: on a volume, or at a link or mount point.
type end struct {
	volume string   // the volume's name, if the walk ended in or at a directory of it
	text   string   // else, what the link or mount point leads to
	rest   []string // and the remaining names
}

// follow goes down names as far as directories lead. No link is followed here: the caller checks where a link leads.
func (t tree) follow(names []string) (end, error) {
	current, err := t.descend(nil, false)
	if err != nil {
		return end{}, err
	}
	for i, name := range names {
		if err := checkName(name); err != nil {
			return end{}, errors.Join(err, current.Close())
		}
		text, err := redirection(at{current, name})
		if err != nil {
			return end{}, errors.Join(fmt.Errorf("%s: %w", name, err), current.Close())
		}
		if text != "" {
			return end{text: text, rest: names[i+1:]}, current.Close()
		}
		if i == len(names)-1 {
			break // a file or directory is on the volume of the directory that holds it
		}
		if current, err = advance(current, name, false); err != nil {
			return end{}, err
		}
	}
	volume, err := current.Volume()
	return end{volume: volume}, errors.Join(err, current.Close())
}
