# One binary on a small base. Build: docker build -t linesman .  Run: see compose.yaml, or deploy/ for a cluster.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The compiler is this image's: the file would have rustup fetch another.
RUN rm rust-toolchain.toml && cargo build --profile dist --locked -p linesman

FROM debian:bookworm-slim
# Certificates tell whether PostgreSQL, the mail server and upstreams are who they say they are. Of Debian's newest, so
# that no version is fixed.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
# The number is written out so that Kubernetes can see that it is not root.
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/linesman linesman
COPY --from=build /src/target/dist/linesman /usr/local/bin/linesman
USER 10001
WORKDIR /var/lib/linesman
# The API, pages and ingest; metrics stay inside unless published on purpose.
EXPOSE 8080 9464
ENV LINESMAN_SERVER__LISTEN=0.0.0.0:8080 \
    LINESMAN_SERVER__OPS_LISTEN=0.0.0.0:9464
STOPSIGNAL SIGTERM
# No health check in here: whoever runs it asks /healthz and /readyz on the ports above.
ENTRYPOINT ["linesman", "--data", "/var/lib/linesman/data"]
CMD ["serve"]
