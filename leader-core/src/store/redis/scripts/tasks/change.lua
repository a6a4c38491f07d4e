-- Changes what will become of a task.
-- ARGV: 1 task, 2 'cancel', 'reschedule' or 'retry', 3 '@' and when it is due or '+' and in how many ms, 4 channel, 5 group, 6 how many that have
--       ended are kept
-- Gives: 'done' and the status before, 'asked', 'not' and the status, 'unique' and who has the key, or 'unknown'
local task, what = ARGV[1], ARGV[2]
local record = call('HGET', tasks, task)
if not record then
  local status = find_ended(task)
  return status and { 'not', status } or { 'unknown' }
end
local lane, created, due, generation, unique = read_head(record)
look_at_keys({ 'attempts', 'cancels', 'unique', 'unfinished' }, { 'running', 'lanes', 'dead' })
if not lane then
  forget(task)
  return { 'unknown' }
end
local s = read_state(call('HGET', attempts, task) or '')
due = tonumber(s and s.due ~= '-' and s.due or due)
local waits = own('ZSCORE', bucket(lane, due), task)
local status = waits and (s and s.attempt ~= '0' and 'failed' or 'pending') or 'dispatched'
if s and s.status == 'r' then
  status = 'running'
elseif s and s.status == 'd' then
  status = 'dead'
end
s = s or new_state(record)

local function leave()
  call('ZREM', bucket(lane, due), task)
  look_at(lane)
end
local before = earliest()
if what == 'cancel' then
  if status == 'running' then
    call('HSET', prefix .. 'cancels', task, now_text)
    return { 'asked' }
  elseif status == 'dead' then
    return { 'not', status }
  end
  if waits then
    leave()
  else
    -- What is read is taken out at once: its entry is among those that wait, of which there are not too many.
    local stream, from = prefix .. 'stream:' .. lane, '-'
    repeat
      local some = own('XRANGE', stream, from, '+', 'COUNT', '1000')
      for _, one in ipairs(some) do
        if one[2][2] == task then
          call('XDEL', stream, one[1])
        end
      end
      from = #some == 1000 and '(' .. some[1000][1]
    until not from
  end
  s.due = text_of(due)
  keep_ended({ task, as_ended('cancelled', s) }, tonumber(ARGV[6]))
  call('HDEL', tasks, task)
  call('HDEL', attempts, task)
  free_unique(unique, task)
  unfinished(generation, -1)
  count('cancelled', 1)
  return { 'done', status }
end

local at = now
if what == 'reschedule' then
  if not waits then
    return { 'not', status }
  end
  at = tonumber(string.sub(ARGV[3], 2))
  if string.byte(ARGV[3]) == 43 then
    at = now + at
  end
elseif status == 'dead' then
  local other = unique ~= '' and holder_of(unique)
  if other and other ~= task then
    return { 'unique', other }
  end
  s.failed, s.losses = '0', '0'
elseif status ~= 'failed' then
  return { 'not', status }
end
s.status, s.due = 'w', text_of(at)
-- The first write, which a server without memory refuses: and nothing is done.
call('HSET', attempts, task, write_state(s))
if status == 'dead' then
  if unique ~= '' then
    call('HSET', prefix .. 'unique', unique, task)
  end
  call('ZREM', prefix .. 'dead', task)
  unfinished(generation, 1)
end
if waits then
  leave()
end
wait(lane, task, at)
tell_due(before, ARGV[4], ARGV[5])
return { 'done', status }
