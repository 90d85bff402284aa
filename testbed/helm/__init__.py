"""The chart, rendered by real helm and installed on a real API server.

python -m testbed.helm     (make helm-check)

go.mod       which helm
building     compiles it, once; the program is kept in the cache
cases        values that people set, and values that have to be refused
checking     what must be true of each rendering and of each release
"""
