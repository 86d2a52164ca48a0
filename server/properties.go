package server

func (x *exchange) serviceProperties() error    { return errNotImplemented }
func (x *exchange) setServiceProperties() error { return errNotImplemented }
func (x *exchange) serviceStats() error         { return errNotImplemented }
