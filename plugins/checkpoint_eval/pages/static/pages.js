// Times are UTC on the page; hovering says what that is where the reader is.
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.getTime())) time.title = at.toLocaleString();
}
