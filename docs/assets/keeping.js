// What a reader chose: in the address, so that it can be shared, and in storage, so that it lasts.

/** The choice called `name`, that of the address first; empty if there is none. */
export function chosen(name) {
  return new URLSearchParams(location.search).get(name) ?? stored(name);
}

function stored(name) {
  try {
    return localStorage.getItem(`benchbook.${name}`) ?? "";
  } catch {
    return ""; // a reader who forbids storage has the address
  }
}

/** Keep `value` as the choice called `name`, or nothing if it is empty: in the address alone if it is another's link. */
export function keep(name, value, lasting = true) {
  const address = new URL(location.href);
  if (value) address.searchParams.set(name, value);
  else address.searchParams.delete(name);
  if (address.href !== location.href) history.replaceState(history.state, "", address);
  if (!lasting) return;
  try {
    if (value) localStorage.setItem(`benchbook.${name}`, value);
    else localStorage.removeItem(`benchbook.${name}`);
  } catch {
    // See above.
  }
}
