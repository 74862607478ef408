// Package raw passes the messages of gRPC calls on as they are.
// It looks at nothing that it carries.
package raw
