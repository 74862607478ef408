package wmi

// connections keeps a connection per namespace, because to connect costs more than to ask. One worker uses it at a time.
type connections[C any] struct {
	connect func(namespace string) (C, error)
	release func(C)
	held    map[string]C
}

func (c *connections[C]) get(namespace string) (C, error) {
	if held, ok := c.held[namespace]; ok {
		return held, nil
	}
	made, err := c.connect(namespace)
	if err != nil {
		return made, err
	}
	if c.held == nil {
		c.held = make(map[string]C)
	}
	c.held[namespace] = made
	return made, nil
}

// once uses a connection. If that turns out to be gone, the next use makes another.
func (c *connections[C]) once(namespace string, use func(C) error) error {
	connection, err := c.get(namespace)
	if err != nil {
		return err
	}
	if err = use(connection); isLost(err) {
		c.drop(namespace)
	}
	return err
}

// read is once for what changes nothing: over a connection that was kept and is gone, it is tried a second time over a new one.
func (c *connections[C]) read(namespace string, use func(C) error) error {
	_, kept := c.held[namespace]
	err := c.once(namespace, use)
	if kept && isLost(err) {
		err = c.once(namespace, use)
	}
	return err
}

func (c *connections[C]) drop(namespace string) {
	if held, ok := c.held[namespace]; ok {
		delete(c.held, namespace)
		c.release(held)
	}
}

func (c *connections[C]) close() {
	for namespace := range c.held {
		c.drop(namespace)
	}
}
