# A ready program:  docker build -t headscope .
# Your folder, as yourself:  docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" headscope train --out runs/first
# scripts/check-dockerfile tries what is written here.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates
ENV XDG_CACHE_HOME=/opt/cache
WORKDIR /opt/headscope
COPY . .
RUN ./headscope install --prefix /usr/local && rm -rf /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["headscope"]
CMD ["--help"]
