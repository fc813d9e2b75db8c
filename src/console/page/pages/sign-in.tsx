/** Sign-in by e-mail and password, or by personal key. */

import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../components/dialog.tsx";
import { Field } from "../components/fields.tsx";
import { Icon } from "../components/icons.tsx";
import { Button } from "../components/primitives.tsx";
import { toast } from "../components/toast.tsx";
import { errorMessage } from "../lib/api.ts";
import { leaveSession, session, signIn } from "../lib/session.ts";
import { messages } from "../messages/index.ts";

const w = messages.signing;

export function SignIn() {
  useEffect(() => {
    document.title = messages.frame.titleOf(w.signIn);
  }, []);
  return (
    <main class="signing">
      <div class="signing-card">
        <Brand />
        <h1>{w.signIn}</h1>
        <SignInForm />
      </div>
    </main>
  );
}

/** Covers the page of the expired session; its content is preserved but hidden. */
export function SignInAgain() {
  return (
    <Dialog title={w.signIn} size="alone" onClose={() => leaveSession()}>
      <p>{w.again}</p>
      <SignInForm />
    </Dialog>
  );
}

function SignInForm() {
  const { value: now } = session;
  const [isByKey, setByKey] = useState(false);
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [key, setKey] = useState("");
  const [error, setError] = useState(now.state === "out" ? now.failure?.detail : undefined);
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const failed = await signIn(
        isByKey ? { personal_api_key: key.trim() } : { email: email.trim(), password },
      );
      if (failed > 0) toast(w.failuresBefore(failed));
    } catch (failure) {
      setError(errorMessage(failure));
      setBusy(false);
    }
  };
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {isByKey ? (
          <Field
            key="key"
            label={w.key}
            type="password"
            name="key"
            value={key}
            onInput={setKey}
            help={w.keyHelp}
            isRequired
          />
        ) : (
          <>
            <Field
              key="email"
              label={w.email}
              type="email"
              name="email"
              autocomplete="username"
              value={email}
              onInput={setEmail}
              isRequired
            />
            <Field
              key="password"
              label={w.password}
              type="password"
              name="password"
              autocomplete="current-password"
              value={password}
              onInput={setPassword}
              isRequired
            />
          </>
        )}
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <Button kind="main" type="submit" isDisabled={isBusy}>
          {w.signIn}
        </Button>
        <Button
          kind="quiet"
          onClick={() => {
            setByKey(!isByKey);
            setError(undefined);
          }}
        >
          {isByKey ? w.withPassword : w.withKey}
        </Button>
      </form>
      <p class="help">
        {w.forgotPassword} <code>flagkeep users link {email || "EMAIL"}</code>
      </p>
    </>
  );
}

export function Brand() {
  return (
    <p class="signing-brand">
      <span class="mark">
        <Icon name="flag" size={20} />
      </span>
      <span>
        <b>{messages.frame.product}</b>
        <br />
        {w.tagline}
      </span>
    </p>
  );
}
