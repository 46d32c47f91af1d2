package main

import (
	"encoding/json"
	"os"
)

// A cache keeps points in a file: the peers' do not change with our work, and ours are those of a model's identity.
type cache struct {
	path   string
	points map[string]point
}

func loadCache(path string) *cache {
	c := &cache{path, map[string]point{}}
	if b, err := os.ReadFile(path); err == nil {
		json.Unmarshal(b, &c.points)
	}
	return c
}

// get makes what is not there yet, and saves it at once: long runs are interrupted.
func (c *cache) get(key string, make func() (point, error)) (point, error) {
	if p, ok := c.points[key]; ok {
		return p, nil
	}
	p, err := make()
	if err != nil || c.path == "" {
		return p, err
	}
	c.points[key] = p
	b, err := json.MarshalIndent(c.points, "", " ")
	if err != nil {
		return p, err
	}
	return p, os.WriteFile(c.path, b, 0o644)
}
