/** What the console's page sends, without a page. */

export const goodPassword = "correct horse battery staple";

export class Browser {
  /** @param jar cookies by name; browsers share them between the ports of a host. */
  constructor(
    private readonly url: string,
    private readonly jar = new Map<string, string>(),
  ) {}

  headers(): Record<string, string> {
    const cookie = [...this.jar].map(([name, value]) => `${name}=${value}`).join("; ");
    return { "X-Flagkeep-Console": "1", "Sec-Fetch-Site": "same-origin", Origin: this.url, Cookie: cookie };
  }

  async ask(method: string, path: string, body?: unknown): Promise<Response> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...this.headers(),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      if (value === "") this.jar.delete(name!);
      else this.jar.set(name!, value!);
    }
    return response;
  }

  /** Uses a one-time link. */
  async setUp(link: string, password = goodPassword): Promise<Response> {
    return await this.ask("POST", "/api/session/setup/", { token: link.split("#")[1], password });
  }

  async signIn(email: string, password = goodPassword): Promise<Response> {
    return await this.ask("POST", "/api/session/", { email, password });
  }
}
