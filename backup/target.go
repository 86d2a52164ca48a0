package backup

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Target is a set of objects: names with bytes. An object exists whole or not at all: no
// crash, error or cancelled ctx leaves a part of one under its name, and no reader sees
// one before it is complete. The methods may be called concurrently.
//
// A name has one or more elements, separated by slashes; CheckName has the rules. Each
// method refuses another name.
//
// When Put, PutIfAbsent or Delete returns nil, its effect is durable. After any other
// error than one that matches fs.ErrExist, the effect may or may not have happened, and
// if it has, it may not be durable. To find out, call it again.
type Target interface {
	// Put stores the bytes of r, to its end, as an object. It replaces an object of that
	// name in one step.
	Put(ctx context.Context, name string, r io.Reader) error
	// PutIfAbsent stores the bytes of r as an object. If the name exists, nothing
	// changes, the object is durable, and the error matches fs.ErrExist. Of several concurrent calls for a name,
	// one succeeds. If the object may be from an earlier call that did not report its
	// success, compare it.
	PutIfAbsent(ctx context.Context, name string, r io.Reader) error
	// Get opens an object for reading. The reader returns the bytes of one object, even
	// if Put replaces it meanwhile, and fails when ctx ends. The caller closes it. If the
	// object does not exist, the error matches fs.ErrNotExist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the objects whose names begin with prefix, in ascending byte order of
	// their names. The prefix can end anywhere in a name. Objects that are stored or
	// deleted meanwhile may be missing; all others are listed once.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object. It returns nil if the object does not exist.
	Delete(ctx context.Context, name string) error
}

// Object describes an object of a Target.
type Object struct {
	Name string
	Size int64 // in bytes
}

// Limits of a name.
const (
	maxName    = 1000
	maxElement = 200
)

// CheckName verifies the name of an object: at most 1,000 bytes in elements of 1 to 200 bytes
// that are separated by slashes. An element consists of ASCII letters, digits, '-', '_' and
// '.', and does not begin with '.'. No name may be another one followed by a slash and
// more, because a directory cannot hold both.
func CheckName(name string) error {
	bad := len(name) > maxName
	for element := range strings.SplitSeq(name, "/") {
		bad = bad || element == "" || len(element) > maxElement || element[0] == '.' || strings.ContainsFunc(element, notInName)
	}
	if bad {
		return fmt.Errorf("%q is not a name of an object", name)
	}
	return nil
}

func notInName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && !(r >= '0' && r <= '9') && r != '-' && r != '_' && r != '.'
}

// contextReader fails when its ctx ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
