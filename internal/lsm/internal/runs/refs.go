package runs

// Ref adds a reference to the file of each sstable of l.
func (l List) Ref() {
	for _, s := range l.SSTs() {
		s.refs.Add(1)
	}
}

// Unref releases the references of a Ref. It returns the files that have none left, each once. The
// caller closes them.
func (l List) Unref() (unused []*File) {
	for _, s := range l.SSTs() {
		if s.refs.Add(-1) == 0 {
			unused = append(unused, s.File)
		}
	}
	return unused
}

// Replaced makes the files of l obsolete that next does not have. Call it when the durable manifest
// lists those of next.
func (l List) Replaced(next List) {
	live := make(map[*File]bool)
	for _, s := range next.SSTs() {
		live[s.File] = true
	}
	for _, s := range l.SSTs() {
		if !live[s.File] {
			s.obsolete.Store(true)
		}
	}
}

// Obsolete reports whether the durable manifest does not list f.
func (f *File) Obsolete() bool { return f.obsolete.Load() }
