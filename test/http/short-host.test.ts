import { expect, test } from "bun:test";
import { server, useServer } from "../support/use-server.ts";

useServer();

for (const host of ["x", "api", "[::1]", "flags.example.com"]) {
  test(`requests to the host ${host} find their routes`, async () => {
    const body = JSON.stringify({ api_key: server.token, event: "x", distinct_id: "y" });
    const { hostname, port } = new URL(server.url);
    const lines = ["POST /capture/ HTTP/1.1", `Host: ${host}`, "Content-Type: application/json"];
    const answer = Promise.withResolvers<string>();
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, chunk) => answer.resolve(chunk.toString()),
        error: (_, error) => answer.reject(error),
      },
    });
    socket.write(`${[...lines, `Content-Length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`);
    expect(await answer.promise).toStartWith("HTTP/1.1 200");
    socket.end();
  });
}
