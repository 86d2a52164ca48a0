package server

func (x *exchange) batch() error { return errNotImplemented }
