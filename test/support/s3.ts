/** A real S3-compatible server, and a proxy before it that can fail. */

import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver, { type S3Store } from "s3rver";
import { until } from "./server.ts";

export const bucket = "keep";

/** What the server takes for credentials. */
export const s3Environment = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };

export class TestS3 implements AsyncDisposable {
  /** Requests so far, and which of them are answered with a failure. */
  requests: string[] = [];
  fails: (number: number, request: Request) => "error" | "cut" | "flip" | undefined = () => undefined;

  private constructor(
    private readonly server: S3rver,
    private readonly proxy: ReturnType<typeof Bun.serve>,
    private readonly folder: string,
  ) {}

  static async start(): Promise<TestS3> {
    const folder = mkdtempSync(join(tmpdir(), "flagkeep-s3-"));
    const server = new S3rver({
      address: "127.0.0.1",
      port: 0,
      silent: true,
      directory: folder,
      configureBuckets: [{ name: bucket, configs: [] }],
    });
    answerWhenWritten(server.store);
    const { port } = await server.run();
    const proxy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      maxRequestBodySize: 1024 ** 3,
      fetch: (request) => created.forward(request, port),
    });
    const created = new TestS3(server, proxy, folder);
    return created;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.proxy.port}`;
  }

  private async forward(request: Request, port: number): Promise<Response> {
    this.requests.push(`${request.method} ${new URL(request.url).pathname}`);
    const failure = this.fails(this.requests.length, request);
    if (failure === "error") {
      return new Response("<Error><Code>InternalError</Code><Message>no</Message></Error>", { status: 500 });
    }
    const url = new URL(request.url);
    url.port = String(port);
    const headers = new Headers(request.headers);
    headers.set("host", new URL(this.endpoint).host);
    const answer = await fetch(url, {
      method: request.method,
      headers,
      body: request.body === null ? undefined : await request.arrayBuffer(),
    });
    const isEmpty = request.method === "HEAD" || answer.status === 204;
    const body = isEmpty ? null : Buffer.from(await answer.arrayBuffer());
    if (body !== null && failure === "flip") body[body.length >> 1]! ^= 1;
    const cut = body !== null && failure === "cut" ? body.subarray(0, body.length >> 1) : body;
    const answered = new Headers(answer.headers);
    if (!isEmpty) answered.delete("content-length");
    return new Response(cut, { status: answer.status, headers: answered });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy.stop(true);
    await this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The server responds after reading an object or part, and writes later: the next request might not find it. */
function answerWhenWritten(store: S3Store): void {
  const written = async <Stored extends { size: number }>(stored: Stored, path: string) => {
    const size = () => statSync(path, { throwIfNoEntry: false })?.size ?? -1;
    await until(() => size() >= stored.size, "it is written");
    return stored;
  };
  const putObject = store.putObject.bind(store);
  store.putObject = async (object) =>
    await written(await putObject(object), store.getResourcePath(object.bucket, object.key, "object"));
  const putPart = store.putPart.bind(store);
  store.putPart = async (bucket, upload, part, content) => {
    const path = join(store.getResourcePath(bucket, undefined, "uploads"), upload, String(part));
    return await written(await putPart(bucket, upload, part, content), path);
  };
}
