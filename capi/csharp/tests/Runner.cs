using System;
using System.Linq;
using System.Reflection;
using System.Threading;

namespace Whitewater.Tests
{
    /// <summary>A method to run. Its class is made anew for each, and disposed of.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class TestAttribute : Attribute
    {
    }

    /// <summary>Runs all tests, or those whose names contain one of the arguments.</summary>
    internal static class Runner
    {
        private static readonly TimeSpan Patience = TimeSpan.FromMinutes(3); // a test that takes this long hangs

        private static int Main(string[] wanted)
        {
            int count = 0, failed = 0;
            foreach (MethodInfo test in typeof(Runner).Assembly.GetTypes().SelectMany(type => type.GetMethods()))
            {
                string name = test.DeclaringType.Name + ": " + test.Name.Replace('_', ' ');
                if (test.GetCustomAttribute<TestAttribute>() == null || wanted.Length > 0 && !wanted.Any(name.Contains))
                {
                    continue;
                }
                count++;
                using (new Timer(_ => Hangs(name), null, Patience, TimeSpan.FromMilliseconds(-1)))
                {
                    object instance = Activator.CreateInstance(test.DeclaringType);
                    try
                    {
                        test.Invoke(instance, null);
                        Console.WriteLine("ok      " + name);
                    }
                    catch (TargetInvocationException failure)
                    {
                        failed++;
                        Console.WriteLine("FAILED  " + name + "\n" + failure.InnerException);
                    }
                    finally
                    {
                        (instance as IDisposable)?.Dispose();
                    }
                }
            }
            Console.WriteLine(count + " tests, " + failed + " failures");
            return failed == 0 && count > 0 ? 0 : 1;
        }

        private static void Hangs(string name)
        {
            Console.WriteLine("HANGS   " + name);
            Environment.Exit(1);
        }
    }

    /// <summary>What a test asserts.</summary>
    internal static class Check
    {
        internal static void That(bool holds, string what)
        {
            if (!holds)
            {
                throw new Exception("not so: " + what);
            }
        }

        internal static void Equal<T>(T expected, T actual)
        {
            if (!Equals(expected, actual))
            {
                throw new Exception("expected " + expected + ", got " + actual);
            }
        }

        internal static void Bytes(byte[] expected, byte[] actual)
        {
            That(actual != null && expected.SequenceEqual(actual), "the bytes are " + BitConverter.ToString(expected));
        }

        internal static T Throws<T>(Action action) where T : Exception
        {
            try
            {
                action();
            }
            catch (T expected)
            {
                return expected;
            }
            throw new Exception("no " + typeof(T).Name);
        }
    }
}
