/** Page of a one-time link: sets the password of the link's user. */

import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Field } from "../components/fields.tsx";
import { Button } from "../components/primitives.tsx";
import { type ApiError, request, toApiError } from "../lib/api.ts";
import type { Setup as SetupLink } from "../lib/api-types.ts";
import { to } from "../lib/router.ts";
import { loadSession } from "../lib/session.ts";
import { notifyTabs } from "../lib/tabs.ts";
import { messages } from "../messages/index.ts";
import { Brand } from "./sign-in.tsx";

const w = messages.signing;

export function Setup() {
  const { route } = useLocation();
  // In the URL fragment, so that no proxy logs it.
  const [token] = useState(() => decodeURIComponent(location.hash.slice(1)));
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [link, setLink] = useState<SetupLink>();
  const [failure, setFailure] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = messages.frame.titleOf(w.setupTitle);
    if (token === "") return;
    request<SetupLink>("/api/session/setup/look/", { method: "POST", body: { token } }).then(
      (found) => {
        setLink(found);
        setEmail(found.email);
        setName([found.first_name, found.last_name].join(" ").trim());
      },
      (error) => setFailure(toApiError(error)),
    );
  }, []);
  const submit = async () => {
    setBusy(true);
    setFailure(undefined);
    const [firstName = "", ...more] = name.trim().split(/\s+/);
    try {
      await request("/api/session/setup/", {
        method: "POST",
        body: { token, email: email.trim(), first_name: firstName, last_name: more.join(" "), password },
      });
      await loadSession();
      notifyTabs("session");
      // The project of an invited member is already set up: home decides.
      route(to(""), true);
    } catch (error) {
      setFailure(toApiError(error));
      setBusy(false);
    }
  };
  const getError = (field: string) => (failure?.attr === field ? failure.detail : undefined);
  const isOfField = ["email", "first_name", "password"].includes(failure?.attr ?? "");
  return (
    <main class="signing">
      <div class="signing-card">
        <Brand />
        <h1>{w.setupTitle}</h1>
        {token === "" ? (
          <p role="alert">{w.noToken}</p>
        ) : link === undefined ? (
          // The response fills the form, so input before it would be overwritten and the address is missing.
          failure && (
            <p class="error" role="alert">
              {failure.detail}
            </p>
          )
        ) : (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void submit();
            }}
          >
            <p class="help">{w.setupHelp(link.organization ?? undefined, link.is_first)}</p>
            <Field
              label={w.email}
              type="email"
              name="email"
              autocomplete="username"
              value={email}
              onInput={setEmail}
              error={getError("email")}
              isRequired
              isReadOnly={!link.is_first}
            />
            <Field
              label={w.name}
              name="name"
              autocomplete="name"
              value={name}
              onInput={setName}
              error={getError("first_name")}
            />
            <Field
              label={w.password}
              type="password"
              name="new-password"
              autocomplete="new-password"
              value={password}
              onInput={setPassword}
              help={w.passwordHelp}
              error={getError("password")}
              isRequired
            />
            {failure && !isOfField && (
              <p class="error" role="alert">
                {failure.detail}
              </p>
            )}
            <Button kind="main" type="submit" isDisabled={isBusy}>
              {w.create}
            </Button>
          </form>
        )}
      </div>
    </main>
  );
}
