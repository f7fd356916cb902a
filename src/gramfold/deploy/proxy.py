"""The reverse proxy in front of a server that sites reach from outside: nginx, which forwards the sites' path and nothing else.

Flower serves sites, operators and its own processes on one port, and requires no password of operators: anyone who reaches it
can run any program at every site. So the server listens on its loopback only, and only this proxy is exposed.
"""

FLEET = "/v1/fleet/"
"""The path that sites use; each of their requests is signed with their key."""


def nginx_configuration(host: str, port: int, link_port: int, keys: str) -> str:
    """A server block for nginx on `host:port`, before a SuperLink on this machine's `link_port`; `keys` is the folder of the
    certificates. The address that is passed on is the one that was matched, after nginx has resolved dots and escapes in it."""
    return f"""\
server {{
    listen {port} ssl;
    server_name {host};
    ssl_certificate     "{keys}/server.crt";
    ssl_certificate_key "{keys}/server.key";
    ssl_protocols       TLSv1.2 TLSv1.3;

    location {FLEET} {{
        proxy_pass                    https://127.0.0.1:{link_port}{FLEET};
        proxy_ssl_trusted_certificate "{keys}/ca.crt";
        proxy_ssl_name                localhost;
        proxy_ssl_verify              on;
        proxy_http_version            1.1;
        proxy_read_timeout            300s;
        client_max_body_size          16m;
    }}

    location / {{
        return 403;
    }}
}}
"""
