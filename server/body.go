package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/server/internal/memory"
	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// readBody reads the request's body into x.body.
func (x *exchange) readBody() error {
	encoding := x.r.Header["Content-Encoding"]
	if len(encoding) > 1 || len(encoding) == 1 && !strings.EqualFold(encoding[0], "identity") {
		return problem.ErrMediaType
	}
	size := x.r.ContentLength
	switch {
	case size > memory.MaxBodyBytes:
		return problem.ErrBodyTooLarge
	case size < 0:
		size = memory.MaxBodyBytes
	}
	x.out.Close()
	defer x.out.Open()
	err := x.body.Read(x.w, x.r.Body, size)
	switch {
	case errors.Is(err, problem.ErrBusy):
		return err
	case err != nil:
		return x.bodyProblem(err)
	}
	// net/http does not read on in a closed body.
	_ = x.r.Body.Close()
	return nil
}

// json returns the body without a byte order mark, which editors and Windows PowerShell write
// at the start of files. The service skips it.
func (x *exchange) json() []byte { return bytes.TrimPrefix(x.body.Bytes, []byte(byteOrderMark)) }

// bodyProblem returns the problem of a body that could not be read, and notes in x.left that
// the client disconnected.
func (x *exchange) bodyProblem(err error) error {
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		return problem.ErrBodyTooLarge
	}
	var network net.Error
	reset := errors.As(err, &network) && !network.Timeout()
	if reset || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(x.r.Context().Err(), context.Canceled) {
		x.left = fmt.Errorf("the client disconnected: read the body: %w", err)
	}
	return problem.ErrProcessing
}
